/** A file of the session's directory, to look at. */
import { path } from "../../app/api";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { lookOf, Preview } from "../cards/artifact";

interface Props {
  session: string;
  place: string;
  close(): void;
}

/** A browser would read steps upwards as another address. */
const isWithin = (place: string): boolean => !place.startsWith("/") && !place.split(/[/\\]/).includes("..");

export function FileLook({ session, place, close }: Props) {
  const name = place.split("/").at(-1) || place;
  const url = path("sessions", session, "files", ...place.split("/"));
  const made = { id: place, type: "file", name, path: place };
  const [look] = lookOf(made);
  // what a page is made of is the file; and a file of no known kind is most likely text
  const shown = look === "page" || look === "none" ? "text" : look;
  return (
    <Dialog title={name} close={close} kind="sheet">
      <div class="files">
        <p class="files-where small muted">
          <bdi class="mono">{place}</bdi>
          {isWithin(place) && (
            <a class="button quiet icon" href={url} download={name} aria-label={`Download ${name}`} title="Download">
              <Icon name="download" size={15} />
            </a>
          )}
        </p>
        {isWithin(place) ? (
          <Preview look={shown} made={made} url={url} />
        ) : (
          <p class="small">It is not in the session’s directory, so it is not shown here.</p>
        )}
      </div>
    </Dialog>
  );
}
