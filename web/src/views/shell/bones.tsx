/** What stands in the place of a session that is not there yet; it can be seen only if that takes a while. */
export function Bones() {
  return (
    <div class="scroll" aria-busy="true">
      <div class="loading" aria-hidden="true">
        <i />
        <i />
        <i />
        <i />
      </div>
    </div>
  );
}
