/** What goes with the text: pictures, and the files that it mentions. */
import { pictureUrl } from "../../app/commands";
import type { Draft } from "../../app/drafts";
import { Icon } from "../../ui/icon";

export function Attached({ draft, reading }: { draft: Draft; reading: number }) {
  const pictures = draft.pictures.value;
  void draft.text.value;
  const mentions = draft.mentioned();
  if (!pictures.length && !mentions.length && !reading) return null;
  return (
    <ul class="composer-attached" aria-label="Attached">
      {pictures.map((picture) => (
        <li key={picture.id} class="composer-picture">
          <img src={pictureUrl(picture)} alt={picture.name} title={picture.name} />
          <Remove
            name={picture.name}
            remove={() => (draft.pictures.value = pictures.filter(({ id }) => id !== picture.id))}
          />
        </li>
      ))}
      {mentions.map((path) => (
        <li key={path} class="composer-file chip" title={path}>
          <Icon name="file" size={12} />
          <span class="cut">{path.slice(path.lastIndexOf("/") + 1)}</span>
          <Remove
            name={path}
            remove={() => draft.type(draft.text.value.replaceAll(`@${path}`, "").replace(/ {2,}/g, " "))}
          />
        </li>
      ))}
      {reading > 0 && (
        <li class="chip" role="status">
          Reading {reading === 1 ? "a file" : `${reading} files`}…
        </li>
      )}
    </ul>
  );
}

function Remove({ name, remove }: { name: string; remove(): void }) {
  return (
    <button type="button" class="composer-remove" aria-label={`Remove ${name}`} onClick={remove}>
      <Icon name="cross" size={12} />
    </button>
  );
}
