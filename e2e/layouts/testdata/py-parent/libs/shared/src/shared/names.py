NAME = "parent"
