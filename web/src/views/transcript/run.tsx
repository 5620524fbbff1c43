/** Steps that follow on each other: calls, what was thought between them, what was decided about them. */
import type { ToolCall } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { CallCard } from "../cards/call";
import { FamiliesContext, type Step } from "../cards/family";
import { useFold } from "../text/fold";
import { memo } from "../text/memo";
import { useSource } from "../text/source";
import { useContext } from "preact/hooks";
import { ApprovalLine } from "./decided";
import { type Part, partsOf, summaryOf } from "./grouping";
import { keyOf } from "./layout";
import { ThoughtLine } from "./thought";

export function Run({ steps }: { steps: readonly Step[] }) {
  const source = useSource();
  const families = useContext(FamiliesContext);
  for (const step of steps) void source.version(step).value; // how they are grouped follows from what became of them
  const unasked = (call: ToolCall) => families.of(call).unasked.value !== null;
  return (
    <>
      {partsOf(steps, unasked).map((part) =>
        part.kind === "step" ? (
          <StepView key={keyOf(part.step)} step={part.step} />
        ) : (
          <Group key={`group-${keyOf(part.steps[0]!)}`} part={part} />
        ),
      )}
    </>
  );
}

const StepView = memo(({ step }: { step: Step }) => {
  if (step.type === "tool_call") return <CallCard call={step} />;
  return step.type === "approval" ? <ApprovalLine approval={step} /> : <ThoughtLine thought={step} />;
});

function Group({ part: { steps } }: { part: Part & { kind: "group" } }) {
  const [open, toggle] = useFold(steps[0]!.type === "tool_call" ? groupOf(steps[0]!) : steps[0]!);
  return (
    <div class={`group${open ? " group-open" : ""}`}>
      <button type="button" class="call-head group-head" aria-expanded={open} onClick={toggle}>
        <span class="call-icon">
          <Icon name="fold" size={15} />
        </span>
        <span class="call-line">{summaryOf(steps)}</span>
        <span class="call-turn">
          <Icon name="right" size={12} />
        </span>
      </button>
      {open && (
        <div class="group-steps">
          {steps.map((step) => (
            <StepView key={keyOf(step)} step={step} />
          ))}
        </div>
      )}
    </div>
  );
}

const groups = new WeakMap<ToolCall, object>();
/** What stands for a group in the reader's choice: the call it begins with has a choice of its own. */
function groupOf(call: ToolCall): object {
  let group = groups.get(call);
  if (!group) groups.set(call, (group = {}));
  return group;
}
