/** Text that somebody decides on: what cannot be seen in it is shown by its name, apart from the words. */
import { pieces } from "../../text/highlight/odd";

export function Seen({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece, place) =>
        typeof piece === "string" ? (
          piece
        ) : (
          <mark key={place} class="ask-unseen" title="A sign that cannot be seen">
            {piece.shown}
          </mark>
        ),
      )}
    </>
  );
}
