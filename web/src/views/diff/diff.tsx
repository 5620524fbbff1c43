/** Changes of a file, from its two texts or from a patch. Who is not in the lazy chunk imports `lazy.tsx` instead. */
import { useMemo, useState } from "preact/hooks";
import { parsePatch } from "../../diff/patch";
import { type FileDiff, ROW_LIMIT } from "../../diff/rows";
import { diffTexts } from "../../diff/texts";
import { Code } from "../code/code";
import { FileView } from "./file";
import type { Counts, Fold, Kind } from "./head";

interface Common {
  path: string;
  kind?: Kind | undefined;
  counts?: Counts | undefined;
  language?: string | undefined;
  fold?: Fold | undefined;
  /** What changes is to be seen first, in the box that scrolls around it. */
  first?: boolean | undefined;
}

export interface DiffProps extends Common {
  /** Null is no file. */
  before: string | null;
  after: string | null;
}

export function Diff({ before, after, ...common }: DiffProps) {
  const [limit, setLimit] = useState(ROW_LIMIT);
  const diff = useMemo(() => diffTexts(before, after, 3, limit), [before, after, limit]);
  return <FileView {...common} diff={diff} showAll={() => setLimit(Infinity)} />;
}

export interface PatchProps extends Common {
  patch: string;
}

/** A patch may be of several files; each has its own name then. */
export function Patch({ patch, ...common }: PatchProps) {
  const [limit, setLimit] = useState(ROW_LIMIT);
  const files = useMemo(() => parsePatch(patch, limit), [patch, limit]);
  const showAll = () => setLimit(Infinity);
  if (files.length > 1) {
    return (
      <div class="diff-files">
        {files.map((diff, index) => (
          <FileView
            key={index}
            path={pathOf(diff, common.path)}
            diff={diff}
            showAll={showAll}
            first={common.first && index === 0}
          />
        ))}
      </div>
    );
  }
  const [diff = NOTHING] = files;
  // what is not understood is still what the agent said
  if (!isUnderstood(diff) && patch.trim()) return <Code text={patch} language="diff" />;
  return <FileView {...common} path={common.path || pathOf(diff, "")} diff={diff} showAll={showAll} />;
}

export const NOTHING: FileDiff = { rows: [], added: 0, removed: 0 };

/** Whether a patch says anything: of lines, or of what became of the file. */
const isUnderstood = ({ rows, before, after, binary }: FileDiff): boolean =>
  rows.some((row) => row.kind !== "gap") || before !== undefined || after !== undefined || binary === true;

export const pathOf = ({ before, after }: FileDiff, otherwise: string): string => after ?? before ?? otherwise;
