/** Archived sessions, read when somebody asks for them. The hub's news are only of the others. */
import { useEffect, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import { words } from "../../app/hub";
import type { SessionRow } from "../../app/rows";

interface Archived {
  /** Null until they were read. */
  rows: SessionRow[] | null;
  next: string | null;
  failed: string | null;
  more(): Promise<void>;
  drop(row: SessionRow): void;
}

interface Page {
  sessions: SessionRow[];
  next: string | null;
}

export function useArchived(wanted: boolean): Archived {
  const hub = useHub();
  const [page, setPage] = useState<Page | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const read = async (before: string | null) => {
    try {
      const from = before === null ? "" : `&before=${encodeURIComponent(before)}`;
      const found = await hub.api.get<Page>(`sessions?archived=true${from}`);
      setFailed(null);
      setPage((now) => ({
        ...found,
        sessions: [...(before === null ? [] : (now?.sessions ?? [])), ...found.sessions],
      }));
    } catch (error) {
      setFailed(words(error));
    }
  };
  useEffect(() => {
    if (wanted) void read(null);
  }, [wanted]);
  return {
    rows: page?.sessions ?? null,
    next: page?.next ?? null,
    failed,
    more: () => read(page?.next ?? null),
    drop: (row) => setPage((now) => now && { ...now, sessions: now.sessions.filter((one) => one.id !== row.id) }),
  };
}
