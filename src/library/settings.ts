/** How long finished tasks, the audit log and usage by day are kept. */
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
  auditAge: duration("server.settings.audit_retention_time", {
    default: "365d",
    doc: "Records of the audit log are removed after this time; 0 keeps them forever.",
  }),
  usageAge: duration("server.settings.usage_retention_time", {
    default: "400d",
    doc: "Usage by day (`GET /usage`) is removed after this time; 0 keeps it forever. What counts toward `budgets.caller_total` is kept.",
  }),
});

export type RetentionLimits = SettingValues<typeof retentionSettings>;
