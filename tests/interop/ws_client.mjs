// A client of remote ACP on the TypeScript SDK: `node --experimental-websocket ws_client.mjs URL TOKEN CWD`.
// It is refused, authenticates, opens a session, reports what it is asked and what is withdrawn, and prompts when told.
// tests/e2e/test_server_shared.py reads its lines.
import { createInterface } from "node:readline";
import { client, methods } from "@agentclientprotocol/sdk";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [url, token, cwd] = process.argv.slice(2);
const print = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const updates = [];
const text = (kind) =>
  updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join("");

const app = client({ name: "ws-client" })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
  })
  .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
    print({ asked: params.toolCall.toolCallId });
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        print({ withdrawn: params.toolCall.toolCallId });
        resolve({ outcome: { outcome: "cancelled" } });
      });
    });
  });

await app.connectWith(createWebSocketStream(url), async (agent) => {
  await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const refused = await agent.request("session/list", {}).catch((error) => error.code);
  await agent.request("authenticate", { methodId: "pilothouse-token", _meta: { token } });
  const { sessionId } = await agent.request("session/new", { cwd, mcpServers: [] });
  print({ sessionId, refused });
  for await (const _ of createInterface({ input: process.stdin })) break;
  const prompt = [{ type: "text", text: "echo from TypeScript" }];
  const { stopReason } = await agent.request("session/prompt", { sessionId, prompt });
  const seqs = updates.map((update) => update._meta.pilothouse.seq);
  print({ stopReason, seqs, user: text("user_message_chunk"), agent: text("agent_message_chunk") });
});
process.exit(0);
