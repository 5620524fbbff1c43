/** A form that an agent asks for. Errors are shown at their fields after the first attempt to send it. */
import { useMemo, useState } from "preact/hooks";
import type { JsonObject } from "../../model/json";
import { visible } from "../../text/highlight/odd";
import { Seen } from "./hidden";
import { useTyped } from "./typed";
import { check, type Field, fieldsOf, type Raw, rawOf, type Raws } from "./schema";

interface Props {
  id: string;
  /** The key under which the draft is stored. */
  mark: string;
  form: JsonObject;
  busy: boolean;
  send(values: JsonObject): void;
  decline(): void;
}

export function Form({ id, mark, form, busy, send, decline }: Props) {
  const fields = useMemo(() => fieldsOf(form), [form]);
  const [raws, setRaws] = useTyped<Raws>(mark, "form", {});
  const [tried, setTried] = useState(false);
  const { values, errors } = check(fields, raws);
  const wrong = Object.keys(errors).length;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setTried(true);
    const [first] = Object.keys(errors);
    if (first === undefined) send(values);
    else document.getElementById(`${id}-${first}`)?.focus();
  };
  return (
    <form class="ask-form" noValidate onSubmit={submit}>
      {fields.map((field) => (
        <Row
          key={field.name}
          id={`${id}-${field.name}`}
          field={field}
          raw={rawOf(field, raws)}
          error={tried ? (errors[field.name] ?? "") : ""}
          put={(raw) => setRaws((before) => ({ ...before, [field.name]: raw }))}
        />
      ))}
      <div class="ask-choices">
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? "Sending…" : "Send"}
        </button>
        <button type="button" class="button" disabled={busy} onClick={decline}>
          Decline
        </button>
        {tried && wrong > 0 && (
          <span class="ask-wrong small" role="alert">
            {wrong === 1 ? "Check one field" : `Check ${wrong} fields`}
          </span>
        )}
      </div>
    </form>
  );
}

interface RowProps {
  id: string;
  field: Field;
  raw: Raw;
  error: string;
  put(raw: Raw): void;
}

function Row({ id, field, raw, error, put }: RowProps) {
  const about = [field.description && `${id}-about`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  const own = { id, about, error, field, raw, put };
  const grouped = field.kind === "choices" || (field.kind === "choice" && field.choices.length <= FEW);
  const words = (
    <>
      {field.description && (
        <span id={`${id}-about`} class="tiny muted">
          <Seen text={field.description} />
        </span>
      )}
      {error && (
        <span id={`${id}-error`} class="ask-wrong tiny">
          {error}
        </span>
      )}
    </>
  );
  if (grouped) {
    return (
      <fieldset class="ask-row" aria-describedby={about}>
        <legend>{named(field)}</legend>
        <Options name={id} field={field} raw={raw} put={put} />
        {words}
      </fieldset>
    );
  }
  if (field.kind === "boolean") {
    return (
      <div class="ask-row">
        <label class="ask-option">
          <input
            id={id}
            type="checkbox"
            checked={raw === true}
            aria-describedby={about}
            onChange={(event) => put(event.currentTarget.checked)}
          />
          <span>
            <Seen text={field.title} />
          </span>
        </label>
        {words}
      </div>
    );
  }
  return (
    <div class="ask-row">
      <label for={id}>{named(field)}</label>
      <Input {...own} />
      {words}
    </div>
  );
}

/** Up to so many choices are all shown. */
const FEW = 6;

const named = (field: Field) => (
  <>
    <Seen text={field.title} />
    {field.required && (
      <span class="ask-needed" title="Required">
        {" "}
        *
      </span>
    )}
  </>
);

function Options({ name, field, raw, put }: { name: string; field: Field; raw: Raw; put(raw: Raw): void }) {
  const chosen = Array.isArray(raw) ? raw : [];
  const many = field.kind === "choices";
  const toggle = (place: number, on: boolean) => {
    if (!many) put([place]);
    else put(on ? [...chosen, place].sort((one, other) => one - other) : chosen.filter((one) => one !== place));
  };
  return (
    <>
      {field.choices.map((choice, place) => (
        <label key={place} class="ask-option">
          <input
            id={place ? undefined : name}
            type={many ? "checkbox" : "radio"}
            name={name}
            checked={chosen.includes(place)}
            onChange={(event) => toggle(place, event.currentTarget.checked)}
          />
          <span>
            <Seen text={choice.title} />
          </span>
        </label>
      ))}
    </>
  );
}

const TYPES: Readonly<Record<string, "email" | "url" | "date">> = { email: "email", uri: "url", date: "date" };

function Input({ id, field, raw, error, about, put }: RowProps & { about: string | undefined }) {
  const attributes = {
    id,
    class: "field",
    "aria-invalid": error ? true : undefined,
    "aria-describedby": about,
    "aria-required": field.required || undefined,
  };
  if (field.kind === "choice") {
    const chosen = Array.isArray(raw) ? raw[0] : undefined;
    return (
      <select
        {...attributes}
        value={chosen === undefined ? "" : String(chosen)}
        onChange={(event) => put(event.currentTarget.value === "" ? [] : [Number(event.currentTarget.value)])}
      >
        <option value="">Choose…</option>
        {field.choices.map((choice, place) => (
          <option key={place} value={String(place)}>
            {visible(choice.title)}
          </option>
        ))}
      </select>
    );
  }
  const typed = (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => put(event.currentTarget.value);
  const long = field.kind === "json" || (field.kind === "text" && Number(field.schema["maxLength"]) > 200);
  if (long) return <textarea {...attributes} rows={3} value={String(raw)} onInput={typed} />;
  const mode = field.kind === "number" ? "decimal" : field.kind === "integer" ? "numeric" : undefined;
  const type = (TYPES[field.format] ?? "text") as "text"; // all of them are written the same
  return <input {...attributes} type={type} inputMode={mode} value={String(raw)} onInput={typed} />;
}
