export const name = "pnpm workspace";
