/** Settings of the store. */
import { choice, defineSettings, type Kind, setting } from "../base/index.js";

const databaseKind: Kind<"sqlite" | "memory"> = {
  name: "'sqlite', or 'none' to keep everything in memory",
  brief: "`sqlite`, `none`",
  parse: (raw) => {
    if (raw === "sqlite") return { value: "sqlite" };
    if (raw === "none" || raw === "memory") return { value: "memory" };
    // Decision D8. The URL is not repeated: it usually contains a password.
    return {
      problem:
        typeof raw === "string" && /^postgres(ql)?:/i.test(raw)
          ? "names a PostgreSQL database, which this version does not support: remove it to use SQLite in the data directory, or set it to 'none' to keep everything in memory"
          : "must be 'sqlite' or 'none'; server.data sets the directory of the SQLite file",
    };
  },
  fromText: (text) => text,
  show: (value) => (value === "memory" ? "none (in memory)" : value),
};

export const storeSettings = defineSettings({
  database: setting("store.database", databaseKind, {
    default: "sqlite",
    env: ["DATABASE_URL"],
    doc: "`sqlite` stores everything in the data directory; `none` keeps it in memory until the process ends.",
  }),
  durability: choice("store.durability", ["fsync", "fast"], {
    default: "fsync",
    doc: "`fsync`: acknowledged data survives a power failure. `fast`: it survives only the end of the process.",
  }),
});
