/** The plan in force, pinned above the transcript: how far it is, and the list when unfolded. */
import { useState } from "preact/hooks";
import type { Todo } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { Seen } from "../approvals/hidden";
import { useSource } from "../text/source";

export function PlanCard() {
  const source = useSource();
  void source.head.value;
  const [open, setOpen] = useState(false);
  const fields = source.session.value?.fields;
  const todos = fields?.todos ?? [];
  const done = todos.filter((todo) => todo.status === "completed").length;
  if (done === todos.length) return null; // the transcript has it
  const current =
    todos.find((todo) => todo.status === "in_progress") ?? todos.find((todo) => todo.status === "pending");
  return (
    <section class={`plan${open ? " plan-open" : ""}`} aria-label="Plan">
      <button type="button" class="plan-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="list" size={15} />
        <span class="plan-count">
          {done} of {todos.length}
        </span>
        <span class="cut">
          <Seen text={current?.activeForm || current?.content || ""} />
        </span>
        <span class="call-turn">
          <Icon name="right" size={12} />
        </span>
      </button>
      <progress class="plan-bar" max={todos.length} value={done} aria-label={`${done} of ${todos.length} done`} />
      {open && (
        <div class="plan-list">
          <Todos todos={todos} />
        </div>
      )}
    </section>
  );
}

const STATES: Readonly<Record<Todo["status"], string>> = {
  completed: "done",
  in_progress: "under way",
  pending: "to do",
};

export function Todos({ todos }: { todos: readonly Todo[] }) {
  if (!todos.length) return null;
  return (
    <ol class="todos">
      {todos.map((todo, at) => (
        <li key={at} class={`todo todo-${todo.status}`}>
          <span class="todo-mark" aria-hidden="true">
            {todo.status === "completed" && <Icon name="check" size={11} />}
          </span>
          <span>
            <span class="aside">{STATES[todo.status]}: </span>
            <Seen text={todo.status === "in_progress" && todo.activeForm ? todo.activeForm : todo.content} />
          </span>
          {todo.priority === "high" && <span class="chip">high</span>}
        </li>
      ))}
    </ol>
  );
}
