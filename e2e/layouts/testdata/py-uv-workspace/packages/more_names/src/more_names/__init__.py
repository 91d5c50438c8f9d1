MORE = "more"
