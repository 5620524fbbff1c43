/** The page begins here: one link to the hub, and the frame that shows what it tells. */
import { render } from "preact";
import { Hub } from "./app/hub";
import { watchNotifications } from "./app/notifying";
import { keeping, registerWorker, watchOffline } from "./app/offline";
import { wearTheme } from "./app/settings";
import { listenForKeys } from "./app/shortcuts";
import { watchSeen } from "./app/unread";
import { browserPorts, wakeWith } from "./link/browser";
import { App } from "./views/shell/app";
import { catchFiles } from "./views/shell/falling";

const hub = new Hub(keeping(browserPorts()));
wearTheme(document.documentElement);
wakeWith(hub.link);
watchSeen(hub);
watchNotifications(hub);
watchOffline(hub);
listenForKeys();
catchFiles();
registerWorker();
const place = document.getElementById("app");
if (place) render(<App hub={hub} />, place);
