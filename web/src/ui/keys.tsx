/** Keys of the keyboard, as they are called on this machine. */
import { keyNames } from "../app/shortcuts";

/** `keys` as shortcuts are written: `mod+k`. */
export function Keys({ keys }: { keys: string }) {
  return (
    <>
      {keyNames(keys).map((name) => (
        <kbd key={name}>{name}</kbd>
      ))}
    </>
  );
}
