NAME = "setup"
