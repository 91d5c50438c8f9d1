from more_names import MORE

NAME = "workspace " + MORE
