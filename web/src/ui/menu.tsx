/** A menu that opens at its button: arrows move, Enter chooses, Esc and a press outside close it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon";

export interface Choice {
  label: string;
  icon?: IconName;
  danger?: boolean;
  run(): void;
}

interface Props {
  label: string;
  icon?: IconName;
  /** Asked for when it opens. */
  choices(): Choice[];
}

export function Menu({ label, icon = "more", choices }: Props) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const close = (focus = true) => {
    setOpen(false);
    if (focus) button.current?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class="button quiet icon"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name={icon} />
      </button>
      {open && button.current && <List at={button.current} label={label} choices={choices()} close={close} />}
    </>
  );
}

interface ListProps {
  at: HTMLElement;
  label: string;
  choices: Choice[];
  close(focus?: boolean): void;
}

function List({ at, label, choices, close }: ListProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // above everything: no box that scrolls or is drawn on its own may cut it off
    list.current?.showPopover?.();
    place(list.current, at);
    const items = list.current?.querySelectorAll("button") ?? [];
    items[0]?.focus();
    const outside = (event: Event) => {
      const on = event.target as Node | null;
      if (!list.current?.contains(on) && !at.contains(on)) close(false);
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("scroll", outside, true);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("scroll", outside, true);
    };
  }, []);
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) move(list.current, step);
    else if (event.key === "Escape" || event.key === "Tab") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div ref={list} popover="manual" class="menu" role="menu" aria-label={label} onKeyDown={keys}>
      {choices.map(({ label, icon, danger, run }) => (
        <button
          key={label}
          type="button"
          role="menuitem"
          class={`menu-item${danger ? " danger" : ""}`}
          onClick={() => {
            close();
            run();
          }}
        >
          {icon && <Icon name={icon} />}
          {label}
        </button>
      ))}
    </div>
  );
}

function move(list: HTMLElement | null, step: number): void {
  const items = [...(list?.querySelectorAll("button") ?? [])];
  const now = items.indexOf(document.activeElement as HTMLButtonElement);
  items.at((now + step) % items.length)?.focus();
}

function place(list: HTMLElement | null, at: HTMLElement): void {
  if (!list) return;
  const [box, size] = [at.getBoundingClientRect(), list.getBoundingClientRect()];
  const below = box.bottom + size.height + 8 < innerHeight;
  list.style.top = `${below ? box.bottom + 4 : Math.max(8, box.top - size.height - 4)}px`;
  list.style.left = `${Math.max(8, Math.min(box.right - size.width, innerWidth - size.width - 8))}px`;
}
