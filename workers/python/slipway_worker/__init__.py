"""The Python graph worker of slipway.

One process of this package loads a user's LangGraph graphs with the user's own packages and runs them for the agent
server that started it. It opens no port and no database: everything it reads or stores goes over the link on an
inherited file descriptor (see worker/wire/DESIGN.md).
"""
