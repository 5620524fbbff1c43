// @vitest-environment jsdom
import { h } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import { read } from "../../src/app/stored";
import { CommandFailed } from "../../src/link/link";
import type { JsonObject } from "../../src/model/json";
import type { Question } from "../../src/model/wire.gen";
import { QuestionCard } from "../../src/views/approvals/question";
import { check, fieldsOf } from "../../src/views/approvals/schema";
import { Place } from "./approvals.world";

const FORM: JsonObject = {
  properties: {
    name: { type: "string", title: "Name", minLength: 2 },
    size: { type: "integer", minimum: 1, maximum: 10, default: 3 },
    ratio: { type: "number", minimum: 0 },
    sure: { type: "boolean", default: true },
    colour: {
      type: "string",
      oneOf: [
        { const: "r", title: "Red" },
        { const: "g", title: "Green" },
      ],
    },
    fruits: { type: "array", items: { enum: ["apple", "pear"] }, default: ["pear"], minItems: 1 },
    rest: { type: "object" },
    ["__proto__x"]: { type: "string", default: "p" },
  },
  required: ["name", "colour"],
};

test("what is missing or out of bounds is said at its field", () => {
  const fields = fieldsOf(FORM);
  const { errors } = check(fields, { size: "11", ratio: "-1", rest: "{" });
  expect(errors).toEqual({
    name: "Required",
    size: "At most 10",
    ratio: "At least 0",
    colour: "Choose one",
    rest: "Enter JSON",
  });
  expect(check(fields, { name: "A", size: "1.5", ratio: "x", colour: [0] }).errors).toEqual({
    name: "At least 2 characters",
    size: "Enter a whole number",
    ratio: "Enter a number",
  });
});

test("values have the types of the schema, and what is left empty is left out", () => {
  const { values, errors } = check(fieldsOf(FORM), { name: "Ada", colour: [1], ratio: "0.5", rest: '{"a": [1]}' });
  expect(errors).toEqual({});
  expect(values).toEqual({
    name: "Ada",
    size: 3,
    ratio: 0.5,
    sure: true,
    colour: "g",
    fruits: ["pear"],
    rest: { a: [1] },
    ["__proto__x"]: "p",
  });
});

test("a schema may be anything", () => {
  expect(fieldsOf({ properties: [] })).toEqual([]);
  expect(fieldsOf({ properties: { x: 5, y: null } }).map(({ kind }) => kind)).toEqual(["json", "json"]);
  expect(
    check(fieldsOf(JSON.parse('{"properties": {"__proto__": {"type": "string", "default": "v"}}}')), {}).errors,
  ).toEqual({});
});

let place: Place;
afterEach(() => place?.leave());

function ask(question: Partial<Question>, scopes?: string[]): void {
  place = new Place(scopes ? { scopes } : {});
  const whole: Question = { type: "question", questionId: "q1", question: "Well?", seq: 1, timestamp: "", ...question };
  place.show(h(QuestionCard, { question: whole }));
}

const put = (selector: string, value: string) => {
  const field = place.one<HTMLInputElement>(selector);
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
const soon = (done: () => void) => vi.waitFor(done);
const answers = () => place.commands.map(({ answer }) => answer);

test("a form is sent when it is right, and not before", async () => {
  ask({ form: { properties: { name: { type: "string" }, size: { type: "integer" } }, required: ["name"] } });
  place.one<HTMLFormElement>("form").requestSubmit();
  await soon(() => expect(place.text).toContain("Required"));
  expect(place.commands).toEqual([]);
  expect(document.activeElement?.id).toBe("q-q1-name");
  put("#q-q1-name", "Ada");
  put("#q-q1-size", "4");
  await soon(() => expect(place.text).not.toContain("Required"));
  place.one<HTMLFormElement>("form").requestSubmit();
  await soon(() =>
    expect(place.commands).toEqual([
      { command: "answer_question", questionId: "q1", answer: { name: "Ada", size: 4 } },
    ]),
  );
});

test("one of the options, several of them, or something else", async () => {
  ask({ options: ["A", "B"] });
  place.one("input[type=radio]").click();
  await soon(() => expect(place.button("Answer").disabled).toBe(false));
  place.one<HTMLFormElement>("form").requestSubmit();
  await soon(() => expect(answers()).toEqual(["A"]));
  place.leave();

  ask({ options: ["A", "B"], multiSelect: true });
  for (const box of place.all("input[type=checkbox]").reverse()) box.click();
  put("input[type=text]", "C");
  await soon(() => expect(place.button("Answer").disabled).toBe(false));
  place.one<HTMLFormElement>("form").requestSubmit();
  await soon(() => expect(answers()).toEqual([["A", "B", "C"]]));
});

test("what was typed is still there for who looked elsewhere meanwhile, and gone once it is answered", async () => {
  ask({});
  put("textarea", "half an answer");
  await soon(() => expect(place.button("Answer").disabled).toBe(false));
  place.leave();
  ask({});
  expect(place.one<HTMLTextAreaElement>("textarea").value).toBe("half an answer");
  place.one<HTMLFormElement>("form").requestSubmit();
  await soon(() => expect(place.text).toContain("Answer saved"));
  expect(answers()).toEqual(["half an answer"]);
  place.leave();
  ask({});
  expect(place.one<HTMLTextAreaElement>("textarea").value).toBe("");
});

test("half an answer is there for the next page too", async () => {
  ask({});
  put("textarea", "half an answer");
  await soon(() => expect(place.button("Answer").disabled).toBe(false));
  expect(JSON.stringify(read("answers", {}))).toContain("half an answer");
  place.one<HTMLFormElement>("form").requestSubmit();
  await soon(() => expect(read("answers", null)).toBeNull());
});

test("a page is opened in another tab and said to be done; anything else is no link", async () => {
  ask({ url: "https://example.com/x" });
  expect(place.one("a").getAttribute("rel")).toContain("noopener");
  place.button("Done").click();
  await soon(() => expect(answers()).toEqual([{}]));
  place.leave();
  ask({ url: "javascript:alert(1)" });
  expect(place.all("a")).toHaveLength(0);
  expect(place.text).toContain("javascript:alert(1)");
});

test("declining is an answer, and what the hub refuses is said", async () => {
  ask({});
  place.command = () =>
    Promise.reject(new CommandFailed({ code: "conflict", message: "answered already", recoverable: true }));
  place.button("Decline").click();
  await soon(() => expect(place.one("[role=alert]").textContent).toBe("answered already"));
  expect(answers()).toEqual([null]);
  expect(place.button("Decline").disabled).toBe(false);
});

test("a device that may only watch sees the question and no answers", () => {
  ask({ options: ["A"] }, ["read", "prompt"]);
  expect(place.text).toContain("can only watch");
  expect(place.all("input, button")).toHaveLength(0);
});
