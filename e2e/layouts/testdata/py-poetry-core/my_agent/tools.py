NAME = "poetry"
