/** The form for a new session, which comes when it is wanted. */
import { lazily } from "../../ui/lazy";

export const NewSession = lazily(() => import("./new").then((part) => part.NewSession));
