"""What waits for the writer: each session's jobs in order, the sessions in turn.

A session that floods, or has something large to write, makes nobody else wait: a round takes little of each. Changes
to records alone wait for everything that was handed over before them, since they may be about it.
"""

from __future__ import annotations

from collections import deque

from .commit import Job

ROUND_EVENTS = 20_000
ROUND_JOBS = 1_000
ROUND_BYTES = 1 << 20
"""What one transaction takes at most, so that the first in it does not wait long for the last. One job of any size is
always taken."""
SESSION_BYTES = 256 << 10
"""What one session may have written in a round, except by a single job."""


class Waiting:
    def __init__(self) -> None:
        self._queues: dict[str | None, deque[Job]] = {}
        self._turns: deque[str | None] = deque()
        self._count = 0
        self._given = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: Job) -> None:
        job.order = self._given
        self._given += 1
        self._count += 1
        queue = self._queues.get(job.session_id)
        if queue is None:
            queue = self._queues[job.session_id] = deque()
            self._turns.append(job.session_id)
        queue.append(job)

    def next_large(self) -> Job | None:
        """The first job that has slices to write before it can be committed, of the session whose turn it is."""
        for key in self._turns:
            job = self._queues[key][0]
            if job.is_large and not job.is_staged:
                return job
        return None

    def round(self) -> list[Job]:
        """The jobs of the next commit; none when all that waits is to be staged first."""
        taken: list[Job] = []
        room = ROUND_BYTES
        events = 0
        for _ in range(len(self._turns)):
            key = self._turns[0]
            more = self._take(key, room, ROUND_JOBS - len(taken), ROUND_EVENTS - events, first=not taken)
            taken += more
            room -= sum(job.size for job in more)
            events += sum(len(job.entries) for job in more)
            self._turns.popleft()
            if self._queues[key]:
                self._turns.append(key)
            else:
                del self._queues[key]
            if room <= 0 or len(taken) >= ROUND_JOBS or events >= ROUND_EVENTS:
                break
        self._count -= len(taken)
        return taken

    def _take(self, key: str | None, room: int, jobs: int, events: int, *, first: bool) -> list[Job]:
        queue = self._queues[key]
        taken: list[Job] = []
        size = 0
        while queue and len(taken) < jobs:
            job = queue[0]
            if (job.is_large and not job.is_staged) or (job.session_id is None and not self._is_oldest(job)):
                break
            alone = not taken and (first or job.size <= SESSION_BYTES)
            size += job.size
            events -= len(job.entries)
            if not alone and (size > min(room, SESSION_BYTES) or events < 0):
                break
            taken.append(queue.popleft())
        return taken

    def _is_oldest(self, job: Job) -> bool:
        return all(job is queue[0] or job.order < queue[0].order for queue in self._queues.values() if queue)

    def clear(self) -> list[Job]:
        """All that waits; it waits no more."""
        jobs = sorted((job for queue in self._queues.values() for job in queue), key=lambda job: job.order)
        self._queues.clear()
        self._turns.clear()
        self._count = 0
        return jobs
