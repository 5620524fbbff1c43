/** What a session has made and changed: a look at what can be shown, the files themselves, and what changed in each. */
import { useEffect, useState } from "preact/hooks";
import { path } from "../../app/api";
import { useHub, useOpen } from "../../app/context";
import { words } from "../../app/hub";
import type { FileState, Json } from "../../model/wire.gen";
import { Dialog } from "../../ui/dialog";
import { below, type Made, MadeCard, madeOf } from "../cards/artifact";

const KINDS: Readonly<Record<string, string>> = { created: "new", deleted: "deleted" };

export function Files({ close }: { close(): void }) {
  const open = useOpen();
  void open.head.value;
  const fields = open.session.value?.fields;
  const within = fields?.workingDirectory ?? "";
  const files = [...(fields?.files.values() ?? [])];
  return (
    <Dialog title="Files" close={close} kind="sheet">
      <div class="files">
        <Artifacts session={open.id} within={within} made={files.filter(isNew).length} />
        <h3 class="files-title">Changed</h3>
        <ul class="files-list">
          {files.map((file) => (
            <Changed key={file.path} file={file} within={within} />
          ))}
        </ul>
      </div>
    </Dialog>
  );
}

const isNew = (file: FileState): boolean => file.changeType === "created";

/** The hub finds them among the files that were made; `made` says when to ask again. */
function Artifacts({ session, within, made }: { session: string; within: string; made: number }) {
  const hub = useHub();
  const [list, setList] = useState<readonly Made[]>([]);
  const [failed, setFailed] = useState("");
  const [open, setOpen] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    hub.api.get<{ artifacts: Json[] }>(path("sessions", session, "artifacts")).then(
      ({ artifacts }) => here && setList(artifacts.map(madeOf).filter((one) => one !== null)),
      (error: unknown) => here && setFailed(words(error)),
    );
    return () => {
      here = false;
    };
  }, [session, made]);
  if (failed) return <p class="files-failed small">What it made cannot be listed: {failed}</p>;
  if (!list.length) return null;
  return (
    <>
      <h3 class="files-title">Made</h3>
      {list.map((one) => (
        <MadeCard
          key={one.id}
          made={{ ...one, path: below(within, one.path) }}
          session={session}
          open={open === one.id}
          toggle={() => setOpen(open === one.id ? null : one.id)}
        />
      ))}
    </>
  );
}

function Changed({ file, within }: { file: FileState; within: string }) {
  const kind = KINDS[file.changeType];
  return (
    <li>
      <bdi class="mono cut" title={file.path}>
        {below(within, file.path)}
      </bdi>
      {kind && <span class="chip">{kind}</span>}
      <span class="call-counts tiny" aria-label={`${file.linesAdded} lines added, ${file.linesRemoved} removed`}>
        {file.linesAdded > 0 && <span class="plus">+{file.linesAdded}</span>}
        {file.linesRemoved > 0 && <span class="minus">−{file.linesRemoved}</span>}
      </span>
    </li>
  );
}
