/** Views of who may come in; each comes when it is wanted. */
import { lazily } from "../../ui/lazy";

export const Pair = lazily(() => import("./pair").then((part) => part.Pair));
export const Devices = lazily(() => import("./devices").then((part) => part.Devices));
export const Stranger = lazily(() => import("./stranger").then((part) => part.Stranger));
