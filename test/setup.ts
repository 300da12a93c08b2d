/**
 * In CI every property is tried with the same cases, so that a red build is always about the change. Elsewhere the
 * cases are new each time; `PROPERTY_SEED` repeats those of a failure.
 */
import fc from "fast-check";

const FIXED_SEED = 20_261_116;

const given = process.env.PROPERTY_SEED ?? (process.env.CI === "true" ? String(FIXED_SEED) : undefined);
if (given !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(given) });
