/**
 * The arrows between rooms. A room may import what stands beside it here and nothing else; the database driver is
 * the store's alone, and what runs in browsers imports nothing of Node's.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { describe, expect, it } from "vitest";

const SRC = resolve(import.meta.dirname, "../../src");

const SHARED = ["files", "net", "outbox", "auth"];
const DOMAIN = ["agents", "actions", "federation", "conversations", "mesh"];
const DOORS = ["http", "mcp", "a2a"];

/** What each room may import, itself aside. Everybody may use the journal, which knows nobody. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  journal: [],
  mail: [],
  engine: ["mail"],
  files: [],
  net: [],
  outbox: ["mail", "engine", "net"],
  auth: ["mail", "engine", "net"],
  // The only room that knows SQL: it implements the ports that the others declare.
  store: ["mail", "engine", ...SHARED, ...DOMAIN, ...DOORS],
  agents: ["engine", "mail", ...SHARED],
  actions: ["engine", "mail", ...SHARED],
  federation: ["engine", "mail", ...SHARED],
  conversations: ["engine", "mail", ...SHARED],
  mesh: ["engine", "mail", ...SHARED],
  swarm: ["agents", "actions", "engine", "mail", ...SHARED],
  library: ["engine", "mail", "store", "swarm"],
  config: ["mail", "auth"],
  client: ["mail", "engine"],
  http: ["library", "config", "swarm", "engine", "mail", ...SHARED, ...DOMAIN],
  mcp: ["library", "config", "swarm", "engine", "mail", ...SHARED, ...DOMAIN],
  a2a: ["library", "config", "swarm", "engine", "mail", ...SHARED, ...DOMAIN],
  cli: [
    ...DOORS,
    ...DOMAIN,
    ...SHARED,
    "client",
    "config",
    "engine",
    "index.ts",
    "library",
    "mail",
    "store",
    "swarm",
  ],
};

/** Only types may be taken from these, so that nothing of them reaches a browser. */
const TYPES_ONLY: Readonly<Record<string, readonly string[]>> = { client: ["engine"], store: DOORS };

interface Import {
  readonly file: string;
  readonly specifier: string;
  readonly typeOnly: boolean;
}

function* files(folder: string): Generator<string> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else if (/\.tsx?$/.test(name) && !/\.test(-d)?\.ts$/.test(name)) yield path;
  }
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  const pattern =
    /^(?:import|export)\s+(type\s+)?[^"'`;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"|import\("([^"]+)"\)/gm;
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    specifier: match[2] ?? match[3] ?? match[4] ?? "",
    typeOnly: match[1] !== undefined,
  }));
}

function roomOf(path: string): string {
  return relative(SRC, path).split(sep)[0] ?? "";
}

/**
 * What nobody does outside the journal and the store that implements its ports, and the few places that put the
 * journal's parts to use. Without these there is no second cache, commit queue, retry or follower of journals.
 */
const ONLY_IN_THE_JOURNAL: readonly {
  readonly what: string;
  readonly pattern: RegExp;
  readonly except?: RegExp;
}[] = [
  // Rows alone may be committed by their owners; entries of journals come from decisions of a kernel.
  { what: "appends to a journal", pattern: /\bappends\b(?!: \[\])/ },
  { what: "hands something to the writer", pattern: /\bwriter\??\.(?:push|commit)\b/ },
  { what: "makes a writer", pattern: /\bnew Writer\b|\bextends Writer\b/ },
  // Whoever commits again after somebody else was first has to know that somebody was.
  { what: "knows of stale appends", pattern: /\bStaleAppendError\b/, except: /^engine\/ports\.ts$/ },
  {
    what: "has a kernel",
    pattern: /\bnew Kernel\b|\bextends Kernel\b/,
    except: /^(engine\/runtime\/runtime|conversations\/book\/kernel)\.ts$/,
  },
  // A state of a journal comes from folding it: whoever does not fold keeps none.
  {
    what: "folds entries into a state",
    pattern: /\b(?:evolve|fold|beginState)\(|import \{[^}]*\b(?:evolve|fold|beginState)\b[^}]*\}/,
    except: /^(engine\/(?!runtime\/)|conversations\/domain\/|conversations\/tasks\/live\.ts$)/,
  },
  { what: "reads whole journals", pattern: /\.(?:readMany|readSnapshot)\b/ },
  { what: "hears of stored rows", pattern: /\.onRows\b/ },
  {
    what: "reads all journals in their order",
    pattern: /\.readAll\b/,
    except: /^conversations\/log\/event-log\.ts$/,
  },
  {
    what: "follows a journal by its channel",
    pattern: /\btaskChannel\b/,
    except: /^engine\/runtime\//,
  },
];

const imports = [...files(SRC)]
  .filter((file) => roomOf(file) !== "index.ts" && !file.includes(`${sep}contract${sep}`))
  .flatMap(importsOf);

describe("rooms", () => {
  it("are all known", () => {
    const rooms = readdirSync(SRC).filter((name) => statSync(join(SRC, name)).isDirectory());
    expect(rooms.filter((room) => !(room in ARROWS))).toEqual([]);
  });

  it("import only the rooms that they may", () => {
    const wrong = imports.flatMap(({ file, specifier, typeOnly }) => {
      if (!specifier.startsWith(".")) return [];
      const from = roomOf(file);
      const to = roomOf(resolve(dirname(file), specifier.replace(/\.js$/, ".ts")));
      if (from === to) return [];
      const allowed = to === "journal" || ARROWS[from]?.includes(to) === true;
      const onlyTypes = TYPES_ONLY[from]?.includes(to) === true;
      if (allowed && (!onlyTypes || typeOnly)) return [];
      return [`${relative(SRC, file)} imports ${specifier}`];
    });
    expect(wrong).toEqual([]);
  });

  it("leave database drivers to the store", () => {
    const drivers = /^(better-sqlite3|pg|kysely|node:sqlite)(\/|$)/;
    const wrong = imports
      .filter(({ file, specifier }) => drivers.test(specifier) && roomOf(file) !== "store")
      .map(({ file }) => relative(SRC, file));
    expect(wrong).toEqual([]);
  });

  it("do not say outside the store which database it is", () => {
    const wrong = [...files(SRC)]
      .filter((file) => roomOf(file) !== "store" && /Sqlite/.test(readFileSync(file, "utf8")))
      .map((file) => relative(SRC, file));
    expect(wrong).toEqual([]);
  });

  it("leave appending, folding, reading whole and following of journals to the journal itself", () => {
    const wrong = [...files(SRC)]
      .filter((file) => !["journal", "store"].includes(roomOf(file)))
      .flatMap((file) => {
        const name = relative(SRC, file).replaceAll(sep, "/");
        const text = readFileSync(file, "utf8");
        return ONLY_IN_THE_JOURNAL.flatMap(({ what, pattern, except }) =>
          pattern.test(text) && except?.test(name) !== true ? [`${name} ${what}`] : [],
        );
      });
    expect(wrong).toEqual([]);
  });

  it("leave every wait of the kernel and the runtime to the ports that a simulation owns", () => {
    const owned = /^(journal(?!\/system\.ts)|engine\/runtime)\//;
    const wrong = [...files(SRC)]
      .filter((file) => owned.test(relative(SRC, file).replaceAll(sep, "/")))
      .flatMap((file) => {
        const waits =
          /\b(setTimeout|setImmediate|setInterval|queueMicrotask|nextTick|Date\.now|performance\.now|Math\.random)\b/;
        const found = waits.exec(readFileSync(file, "utf8"));
        return found === null ? [] : [`${relative(SRC, file)}: ${found[0]}`];
      });
    expect(wrong).toEqual([]);
  });

  it("keep the pure parts free of clocks, chance and input", () => {
    const pure = /^(engine(?!\/runtime\/)|mail)\//;
    const wrong = [...files(SRC)]
      .filter((file) => pure.test(relative(SRC, file).replaceAll(sep, "/")))
      .flatMap((file) => {
        const text = readFileSync(file, "utf8");
        const found =
          /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|from "node:(?!util)|\bfetch\(|\bsetTimeout\b/.exec(
            text,
          );
        return found === null ? [] : [`${relative(SRC, file)}: ${found[0]}`];
      });
    expect(wrong).toEqual([]);
  });
});
