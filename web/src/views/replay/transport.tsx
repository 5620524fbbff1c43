/** What moves the moment: play and pause, the time line, the speed, and the way from prompt to prompt. */
import { useState } from "preact/hooks";
import { LONGEST_WAIT } from "../../app/recording";
import { type ReplaySession, type Speed, SPEEDS } from "../../app/replay";
import { Icon, type IconName } from "../../ui/icon";
import { clock, count, lasting, moment, timeOfDay } from "../../ui/time";
import { Contents } from "./contents";
import { TimeLine } from "./line";

export function Transport({ replay }: { replay: ReplaySession }) {
  const [listed, setListed] = useState(false);
  const playing = replay.playing.value;
  return (
    <section class="replay-transport" aria-label="Time">
      <TimeLine replay={replay} />
      <div class="replay-controls">
        <Press icon="back" label="Previous prompt" keys="Shift ←" act={() => replay.leap("prompt", -1)} />
        <Press
          icon={playing ? "pause" : "play"}
          label={playing ? "Pause" : replay.atEnd ? "Play from the beginning" : "Play"}
          keys="Space"
          act={() => replay.toggle()}
          main
        />
        <Press icon="right" label="Next prompt" keys="Shift →" act={() => replay.leap("prompt", 1)} />
        <Moment replay={replay} />
        <Pace replay={replay} />
        <Press icon="list" label="What happened when" keys="" act={() => setListed(true)} />
      </div>
      <Facts replay={replay} />
      {listed && <Contents replay={replay} close={() => setListed(false)} />}
    </section>
  );
}

interface PressProps {
  icon: IconName;
  label: string;
  keys: string;
  act(): void;
  main?: boolean;
}

function Press({ icon, label, keys, act, main = false }: PressProps) {
  return (
    <button
      type="button"
      class={`button icon ${main ? "primary" : "quiet"}`}
      aria-label={label}
      title={keys ? `${label} (${keys})` : label}
      onClick={act}
    >
      <Icon name={icon} />
    </button>
  );
}

function Moment({ replay }: { replay: ReplaySession }) {
  const wait = replay.wait;
  return (
    <div class="replay-moment">
      <span class="replay-time">
        {clock(replay.time.value)} <span class="muted">/ {clock(replay.recording.duration)}</span>
      </span>
      <span class="muted tiny cut" title={moment(replay.timestamp)}>
        {wait ? `${lasting(wait)} pass` : timeOfDay(replay.timestamp)}
      </span>
    </div>
  );
}

function Pace({ replay }: { replay: ReplaySession }) {
  return (
    <select
      class="replay-pace"
      aria-label="Speed"
      title="Speed (keys 1 to 5)"
      value={replay.speed.value}
      onChange={(event) => replay.pace(Number(event.currentTarget.value) as Speed)}
    >
      {SPEEDS.map((speed) => (
        <option key={speed} value={speed}>
          {speed}×
        </option>
      ))}
    </select>
  );
}

function Facts({ replay }: { replay: ReplaySession }) {
  const { waits, length } = replay.recording;
  const real = [...waits.values()].reduce((sum, wait) => sum + wait, 0);
  return (
    <p class="replay-facts muted tiny">
      Event {replay.count.value.toLocaleString()} of {length.toLocaleString()}
      {waits.size > 0 &&
        ` · ${count(waits.size)} ${waits.size > 1 ? "waits" : "wait"} of more than ${LONGEST_WAIT / 1000} s ` +
          `(${lasting(real)} in all) shortened to ${LONGEST_WAIT / 1000} s`}
    </p>
  );
}
