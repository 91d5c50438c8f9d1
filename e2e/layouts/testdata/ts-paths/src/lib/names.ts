export enum Kind {
  Typed = "typed",
}

export const name = (kind: Kind): string => `paths ${kind}`;
