TWO = " two"
