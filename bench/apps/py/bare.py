"""The same graph in this process with an in-memory saver: python bare.py RUNS CONCURRENCY prints {"runs_per_s","p50_ms"}."""

import asyncio
import json
import sys
import time
import uuid

from graph import builder
from langgraph.checkpoint.memory import InMemorySaver


async def measure(count: int, concurrency: int) -> dict:
    graph = builder.compile(checkpointer=InMemorySaver())
    times: list[float] = []
    left = iter(range(count))

    async def client() -> None:
        for _ in left:
            start = time.perf_counter()
            await graph.ainvoke(
                {"messages": [{"role": "user", "content": "hi"}]}, {"configurable": {"thread_id": str(uuid.uuid4())}}
            )
            times.append((time.perf_counter() - start) * 1000)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(concurrency)))
    return {"runs_per_s": count / (time.perf_counter() - began), "p50_ms": sorted(times)[len(times) // 2]}


async def main() -> None:
    runs, concurrency = int(sys.argv[1]), int(sys.argv[2])
    await measure(min(runs, 200), concurrency)  # warm-up
    print(json.dumps(await measure(runs, concurrency)))


asyncio.run(main())
