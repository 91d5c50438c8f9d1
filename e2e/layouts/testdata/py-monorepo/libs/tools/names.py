NAME = "monorepo"
