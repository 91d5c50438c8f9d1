NAME = "subfolder"
