/** Changes as the hub tells them: of one file, of several, or as the preview of an approval. */
import { useMemo, useState } from "preact/hooks";
import { parsePatch } from "../../diff/patch";
import { diffTexts } from "../../diff/texts";
import type { DiffPreview, FileChange } from "../../model/wire.gen";
import { Diff, Patch } from "./diff";
import { EMPTY } from "./file";
import { type Counts, CountsView, type Fold, Head } from "./head";

/** A file as the hub tells of it, or as its texts. */
export type ChangedFile =
  FileChange | { readonly path: string; readonly before: string | null; readonly after: string | null };

/** Changed lines of a file beyond which it is folded, and of all files before it. */
const BIG = 300;
const ENOUGH = 1000;

export function Changes({ files }: { files: readonly ChangedFile[] }) {
  const counts = useMemo(() => files.map(countsOf), [files]);
  const [pressed, setPressed] = useState<ReadonlyMap<string, boolean>>(new Map());
  const open = opening(counts).map((otherwise, index) => pressed.get(keyOf(files, index)) ?? otherwise);
  const all = open.every(Boolean);
  const toggleAll = () => setPressed(new Map(files.map((_, index) => [keyOf(files, index), !all])));
  return (
    <div class="diff-files">
      {files.length > 1 && (
        <p class="diff-sum">
          <span>{files.length.toLocaleString()} files</span>
          <CountsView {...total(counts)} />
          <button type="button" class="button quiet" onClick={toggleAll}>
            {all ? "Fold all" : "Unfold all"}
          </button>
        </p>
      )}
      {files.map((file, index) => {
        const key = keyOf(files, index);
        const toggle = () => setPressed((now) => new Map(now).set(key, !open[index]));
        const fold = files.length > 1 ? { open: open[index] ?? true, toggle } : undefined;
        return <OneFile key={key} file={file} fold={fold} />;
      })}
    </div>
  );
}

/** A file can come twice, when it was changed twice. */
const keyOf = (files: readonly ChangedFile[], index: number): string => `${index} ${files[index]?.path}`;

function OneFile({ file, fold }: { file: ChangedFile; fold?: Fold | undefined }) {
  return "changeType" in file ? <FileChangeView change={file} fold={fold} /> : <Diff {...file} fold={fold} />;
}

function countsOf(file: ChangedFile): Counts {
  if (!("changeType" in file)) return diffTexts(file.before, file.after);
  if (file.linesAdded !== undefined && file.linesRemoved !== undefined) return told(file);
  return total(file.diff ? parsePatch(file.diff) : []);
}

const told = ({ linesAdded = 0, linesRemoved = 0 }: FileChange): Counts => ({
  added: linesAdded,
  removed: linesRemoved,
});

const total = (counts: readonly Counts[]): Counts => ({
  added: counts.reduce((sum, { added }) => sum + added, 0),
  removed: counts.reduce((sum, { removed }) => sum + removed, 0),
});

/** Which files are open before somebody presses anything. */
function opening(counts: readonly Counts[]): boolean[] {
  let before = 0;
  return counts.map(({ added, removed }) => {
    const open = added + removed <= BIG && before <= ENOUGH;
    before += added + removed;
    return open;
  });
}

export function FileChangeView({ change, fold }: { change: FileChange; fold?: Fold | undefined }) {
  const { path, changeType: kind, diff } = change;
  const counts = change.linesAdded === undefined || change.linesRemoved === undefined ? undefined : told(change);
  if (diff) return <Patch path={path} patch={diff} kind={kind} counts={counts} fold={fold} />;
  return (
    <section class="diff">
      <Head path={path} kind={kind} counts={counts ?? null} remarks={[]} fold={fold} room={null} />
      {(fold?.open ?? true) && <p class="diff-note">{isNothing(counts) ? EMPTY[kind] : UNTOLD}</p>}
    </section>
  );
}

const UNTOLD = "Which lines is not told: the agent did not say, or it is too much to compare.";
const isNothing = (counts?: Counts): boolean => counts !== undefined && counts.added + counts.removed === 0;

export function PreviewDiff({ preview, first }: { preview: DiffPreview; first?: boolean | undefined }) {
  return <Patch path={preview.path} patch={preview.diff} first={first} />;
}
