// A front end without a screen: sends a prompt, follows its turn, and comes back when the connection is lost.
//
//     node front_end.mjs http://127.0.0.1:7717 TOKEN SESSION "prompt"

const [base, token, session, prompt] = process.argv.slice(2);

/** Server-sent events of an answer, one by one. */
async function* frames(answer) {
  let rest = "";
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    const whole = (rest + part).split("\n\n");
    rest = whole.pop();
    for (const text of whole) {
      const frame = { data: "" };
      for (const line of text.split("\n")) {
        if (line.startsWith("data: ")) frame.data += line.slice(6);
        if (line.startsWith("id: ")) frame.id = line.slice(4);
      }
      yield frame;
    }
  }
}

/** What is on the screen after one more packet. Each case may see the same packet twice and be none the worse. */
function show(state, packet) {
  switch (packet.type) {
    case "agent_message_chunk":
      state.messageContent += packet.content.text ?? "";
      break;
    case "tool_call_start":
    case "tool_call_progress":
      state.toolCalls.set(packet.toolCallId, { ...state.toolCalls.get(packet.toolCallId), ...packet });
      break;
    case "approval_requested": // a screen would ask here; any other client of the hub may answer as well
    case "question_requested":
      console.error(`It waits for an answer: ${packet.description ?? packet.question}`);
      break;
    case "error":
      state.error = packet.message;
      break;
    case "prompt_response":
      state.isStreaming = false;
      state.stopReason = packet.stopReason;
  }
}

const state = { isStreaming: true, messageContent: "", toolCalls: new Map(), error: null, stopReason: null };
const body = JSON.stringify({ content: prompt, client_request_id: crypto.randomUUID() });
const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };

while (state.isStreaming) {
  try {
    // the same request again is the same turn; with the last id it goes on from there
    const answer = await fetch(`${base}/sessions/${session}/send-message`, { method: "POST", headers, body });
    if (!answer.ok) {
      const { error } = await answer.json();
      if (answer.status < 500) throw Object.assign(new Error(error.message), { final: true });
      throw new Error(error.message);
    }
    for await (const frame of frames(answer)) {
      if (frame.data) show(state, JSON.parse(frame.data));
      if (frame.id) headers["Last-Event-ID"] = frame.id;
    }
  } catch (error) {
    if (error.final) throw error;
  }
  if (state.isStreaming) await new Promise((resolve) => setTimeout(resolve, 200));
}

process.stdout.write(state.messageContent.trimEnd() + "\n");
for (const call of state.toolCalls.values()) console.log(`[${call.status}] ${call.title}`);
console.log(`(${state.error ?? state.stopReason})`);
