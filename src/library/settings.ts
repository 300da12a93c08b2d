/** How long finished tasks are kept. */
import { defineSettings, duration, integer, type SettingValues } from "../base/index.js";

export const retentionSettings = defineSettings({
  maxAge: duration("server.settings.retention_time", {
    default: 0,
    doc: "Finished tasks are removed after this time; 0 keeps them forever.",
  }),
  maxTasks: integer("server.settings.retention_count", {
    default: 0,
    doc: "Number of finished tasks to keep, newest first; 0 keeps all.",
  }),
});

export type RetentionLimits = SettingValues<typeof retentionSettings>;
