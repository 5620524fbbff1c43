/** The frame of the page: the sessions beside what is open, and what lies over both. */
import type { ComponentChildren } from "preact";
import { HubContext, useHub } from "../../app/context";
import type { Hub } from "../../app/hub";
import { applyUpdate, updateReady } from "../../app/offline";
import { hrefOf, type Route, route } from "../../app/route";
import { panel } from "../../app/shortcuts";
import { Icon } from "../../ui/icon";
import { Keys } from "../../ui/keys";
import { lazily, Missing } from "../../ui/lazy";
import { Wished } from "../found/lazy";
import { Panels } from "../palette/lazy";
import { Devices, Pair, Stranger } from "../remote/lazy";
import { NewSession } from "../sessions/lazy";
import { SessionList } from "../sessions/list";
import { Bones } from "./bones";
import { Connection } from "./connection";
import { Needed } from "./head";
import { Mark } from "./mark";
import { Toasts } from "./toasts";

const SessionPage = lazily<{ id: string }>(() => import("./session").then((part) => part.SessionPage), opening);
const Replay = lazily<{ id: string }>(() => import("../replay/replay").then((part) => part.Replay), opening);
const ApprovalCentre = lazily(() => import("../approvals/centre").then((part) => part.ApprovalCentre));

/** A slow network shows where one is, and the way back, before it has brought the rest. */
function opening(_: object, again: (() => void) | null) {
  return (
    <>
      <header class="head">
        <Back />
      </header>
      <Connection />
      {again ? <Missing again={again} /> : <Bones />}
    </>
  );
}

const Back = () => (
  <a class="button quiet icon only-narrow" href={hrefOf({ view: "sessions" })} aria-label="All sessions">
    <Icon name="back" />
  </a>
);

export function App({ hub }: { hub: Hub }) {
  return (
    <HubContext.Provider value={hub}>
      <Body at={route.value} />
      <Toasts />
    </HubContext.Provider>
  );
}

function Body({ at }: { at: Route }) {
  const hub = useHub();
  if (at.view === "pair") return <Alone name="Pair this device" children={<Pair />} />;
  if (hub.status.value.phase === "refused") return <Alone name="Not logged in" children={<Stranger />} />;
  return (
    <>
      <button type="button" class="button skip" onClick={skip}>
        Skip the list of sessions
      </button>
      <div class="shell" data-view={at.view}>
        <nav class="side" aria-label="Sessions">
          {at.view === "sessions" && <h1 class="aside">Sessions</h1>}
          <SideHead />
          {at.view === "sessions" && <Connection />}
          <SessionList />
        </nav>
        <main class="main" id="main">
          {updateReady.value && <Update />}
          <Main at={at} />
        </main>
      </div>
      <Panels />
      <Wished />
    </>
  );
}

/** To what is beside the list; where it scrolls, to where the keys scroll it. */
function skip(): void {
  const main = document.getElementById("main");
  const place =
    main?.querySelector<HTMLElement>("[tabindex='0']") ?? main?.querySelector<HTMLElement>("a, button, input");
  place?.focus();
}

/** For those who are not in yet: there is nothing beside it. */
function Alone({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <main class="main alone" aria-label={name}>
      <div class="scroll">{children}</div>
    </main>
  );
}

function SideHead() {
  return (
    <header class="head">
      <a class="brand" href={hrefOf({ view: "sessions" })}>
        <Mark />
        Pilothouse
      </a>
      <Needed />
      <a
        class="button quiet icon"
        href={hrefOf({ view: "devices" })}
        aria-label="Devices and rules"
        title="Devices and rules"
      >
        <Icon name="phone" />
      </a>
      <button
        type="button"
        class="button quiet icon"
        aria-label="Settings"
        title="Settings"
        onClick={() => (panel.value = "settings")}
      >
        <Icon name="settings" />
      </button>
    </header>
  );
}

const TITLES = { new: "New session", approvals: "Approvals", devices: "Devices and rules" } as const;

function Main({ at }: { at: Route }) {
  switch (at.view) {
    case "session":
      return <SessionPage key={at.id} id={at.id} />;
    case "replay":
      return <Replay key={at.id} id={at.id} />;
    case "new":
    case "approvals":
    case "devices":
      return (
        <>
          <header class="head">
            <Back />
            <h1 class="head-title cut">{TITLES[at.view]}</h1>
          </header>
          <Connection />
          <div class="scroll">
            <div class="page">
              {at.view === "new" ? <NewSession /> : at.view === "approvals" ? <ApprovalCentre /> : <Devices />}
            </div>
          </div>
        </>
      );
    default:
      return <Welcome />;
  }
}

/** Beside the sessions, while none is open. */
function Welcome() {
  const hub = useHub();
  return (
    <>
      <Connection />
      <div class="blank">
        <span class="blank-mark">
          <Mark size={56} />
        </span>
        <h2>Every coding agent, on every screen</h2>
        <p>Choose a session, or start one.</p>
        {hub.may("prompt") && (
          <a class="button primary" href={hrefOf({ view: "new" })}>
            <Icon name="plus" />
            New session
          </a>
        )}
        <p class="small muted">
          <Keys keys="mod+k" /> finds anything · <kbd>?</kbd> shows the keys
        </p>
      </div>
    </>
  );
}

function Update() {
  return (
    <div class="update" role="status">
      A newer page is ready.
      <button type="button" class="button quiet small" onClick={() => applyUpdate()}>
        Reload
      </button>
    </div>
  );
}
