/** How many files a session has changed, and the way to see them. */
import { useState } from "preact/hooks";
import { useOpen } from "../../app/context";
import { Icon } from "../../ui/icon";
import { lazily } from "../../ui/lazy";

const Files = lazily<{ close(): void }>(() => import("./files").then((part) => part.Files));

export function FilesButton() {
  const open = useOpen();
  void open.head.value;
  const [shown, show] = useState(false);
  const count = open.session.value?.fields.files.size ?? 0;
  if (!count) return null;
  const label = count === 1 ? "1 file was changed" : `${count} files were changed`;
  return (
    <>
      <button
        type="button"
        class="button quiet files-button"
        aria-label={label}
        title={label}
        onClick={() => show(true)}
      >
        <Icon name="file" />
        {count}
      </button>
      {shown && <Files close={() => show(false)} />}
    </>
  );
}
