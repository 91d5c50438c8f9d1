HERE = " one"
