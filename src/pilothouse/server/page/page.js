// The plain page: pairs this device, or shows what goes on in the hub. Whatever comes from the hub was written by
// agents and by other people, so it is set as text and never as markup.
"use strict";

const MAY = {
  read: "see sessions and what happens in them",
  prompt: "start sessions and send prompts",
  approve: "decide what agents ask for",
  admin: "manage devices, rules and the hub",
};
const PAIR = "#pair=";
const VIEWS = ["pairing", "paired", "stranger", "overview"];
// the first that fits: an iPad calls itself a Mac as well, Android a Linux
const DEVICES = [
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Android/, "Android"],
  [/Mac OS/, "Mac"],
  [/Windows/, "Windows"],
  [/CrOS/, "Chromebook"],
  [/Linux/, "Linux"],
];

const part = (id) => document.getElementById(id);

// -- the hub --

class Refused extends Error {
  constructor(status, told) {
    super(told.message || `the hub answered with status ${status}`);
    this.status = status;
    this.code = told.code;
    this.details = told.details || {};
  }
}

async function call(method, path, value) {
  const options = { method, cache: "no-store", credentials: "same-origin" };
  if (value !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(value);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("the hub cannot be reached");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.error || {});
  return answer;
}

// -- what is shown --

function show(view) {
  for (const id of VIEWS) part(id).hidden = id !== view;
}

function say(trouble) {
  part("trouble").textContent = trouble;
  part("trouble").hidden = !trouble;
}

function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function fill(id, rows) {
  part(id).replaceChildren(...rows);
  part(`no-${id}`).hidden = rows.length > 0;
}

function card(...lines) {
  const made = document.createElement("li");
  made.append(...lines);
  return made;
}

// each part is on its own: characters that turn the direction of text end with it
function line(kind, ...parts) {
  const made = element("p", "", kind);
  parts.forEach((text, at) => made.append(at ? " · " : "", element("bdi", text)));
  return made;
}

function when(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : date.toLocaleString();
}

const words = (name) => String(name).replaceAll("_", " ");

function sessionCard(session) {
  const waiting = session.pendingApprovals ? [`${session.pendingApprovals} to decide`] : [];
  return card(
    element("strong", session.title || session.id),
    line("", words(session.status), ...waiting),
    line("quiet", session.agent, session.cwd),
    line("quiet", session.id, when(session.updated)),
  );
}

function approvalCard(approval, titles) {
  const { description = "", toolName, riskLevel, riskReasons = [], preview = {} } = approval.request;
  const lines = [element("strong", description || toolName)];
  lines.push(line("", `${riskLevel} risk`, ...riskReasons));
  const shown = preview.diff || preview.command || preview.text;
  if (shown && (shown.includes("\n") || !description.includes(shown))) lines.push(element("pre", shown));
  const session = titles.get(approval.sessionId) || approval.sessionId;
  lines.push(line("quiet", session, approval.id, when(approval.created)));
  return card(...lines);
}

// -- the overview --

async function overview() {
  let me;
  try {
    me = await call("GET", "whoami");
  } catch (error) {
    if (error.status === 401) return show("stranger");
    throw error;
  }
  part("who").textContent = me.name;
  part("may").textContent = `You may: ${me.scopes.join(", ")}.`;
  show("overview");
  const [{ sessions, next }, { approvals }] = await Promise.all([call("GET", "sessions"), call("GET", "approvals")]);
  const titles = new Map(sessions.map((session) => [session.id, session.title]));
  fill("sessions", sessions.map(sessionCard));
  fill("approvals", approvals.map((approval) => approvalCard(approval, titles)));
  part("how-to-decide").hidden = approvals.length === 0;
  part("more-sessions").hidden = next === null;
  part("as-of").textContent = `As of ${new Date().toLocaleTimeString()}.`;
}

async function logOut() {
  await call("POST", "logout");
  show("stranger");
}

// -- pairing --

const ticket = () => (location.hash.startsWith(PAIR) ? location.hash.slice(PAIR.length) : "");

// a used ticket has no business in the address bar or the history
const forgetTicket = () => history.replaceState(null, "", location.pathname + location.search);

function askForCode() {
  const found = DEVICES.find(([pattern]) => pattern.test(navigator.userAgent));
  if (!part("name").value) part("name").value = found ? found[1] : "browser of mine";
  part("code").value = "";
  show("pairing");
  part("code").focus();
}

async function pair() {
  const wish = { ticket: ticket(), code: part("code").value.replace(/\s/g, ""), name: part("name").value };
  let device;
  try {
    device = await call("POST", "pair", wish);
  } catch (error) {
    part("code").select();
    throw error.code === "code_refused" ? new Error(`${error.message}; ${tries(error.details.triesLeft)}`) : error;
  }
  forgetTicket();
  part("paired-name").textContent = device.name;
  const rights = device.scopes.map((scope) => element("li", `${scope}: ${MAY[scope] || ""}`));
  part("paired-scopes").replaceChildren(...rights);
  show("paired");
}

function tries(left) {
  if (left > 0) return left === 1 ? "one more try is left" : `${left} tries are left`;
  return "no try is left, so ask for a new QR code";
}

// -- from here on --

// One thing at a time; what goes wrong is said, and the page stays usable.
async function doing(work) {
  const buttons = document.querySelectorAll("button");
  say("");
  for (const button of buttons) button.disabled = true;
  try {
    await work();
  } catch (error) {
    if (error.status === 401) show("stranger");
    say(`That did not work: ${error.message}.`);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}

const start = () => doing(async () => (ticket() ? askForCode() : overview()));

part("pair").addEventListener("submit", (event) => {
  event.preventDefault();
  doing(pair);
});
part("onward").addEventListener("click", start);
part("refresh").addEventListener("click", start);
part("logout").addEventListener("click", () => doing(logOut));
window.addEventListener("hashchange", start);
start();
