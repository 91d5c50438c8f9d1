NAME = "requirements"
