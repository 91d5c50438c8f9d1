export const name = "npm workspaces";
