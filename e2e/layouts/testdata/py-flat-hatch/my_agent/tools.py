NAME = "hatch"
