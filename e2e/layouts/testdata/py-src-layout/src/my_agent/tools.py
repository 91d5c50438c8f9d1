NAME = "src"
