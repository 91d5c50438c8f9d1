export const name = "npm";
