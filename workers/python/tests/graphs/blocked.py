"""An async node that blocks the event loop until another thread has been served by the store."""

import threading

from graphs import State, one
from langgraph.store.base import BaseStore


async def wait_for_thread(state: State, *, store: BaseStore):
    found = []

    def work():
        store.put(("from", "thread"), "k", {"note": "served while blocked"})
        found.append(store.get(("from", "thread"), "k").value["note"])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)  # blocks the event loop on purpose
    return {"note": found[0] if found else "never served"}


graph = one(wait_for_thread)
