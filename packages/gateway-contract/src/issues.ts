/** Issue codes of documents; stable, for editors and programs. */
export const ISSUE_CODES = [
  "syntax",
  "unknown_field",
  "required",
  "type",
  "out_of_range",
  "bad_value",
  "duplicate_name",
  "duplicate_url",
  "duplicate_setting",
  "duplicate_credential",
  "address_collision",
  "unknown_reference",
  "secret_unresolved",
  "secret_malformed",
  "redacted_placeholder",
  "bad_url",
  "bad_header",
  "bad_file",
  "unknown_event_kind",
  "empty_events",
  "quota_empty",
  "quota_zero",
  "deprecation_empty",
  "date_not_imf_fixdate",
  "date_weekday_mismatch",
  "sunset_past",
  "sunset_before_since",
  "since_before_epoch",
  "uri_without_since",
  "bad_media_type",
  "bad_cidr",
  "ssrf_deny_required",
  "regex_invalid",
  "route_shadowed",
  "empty_routes",
  "unused",
  "restart_needed",
  "compile_failed",
  "not_checked",
  "more_issues",
] as const;
export type IssueCode = (typeof ISSUE_CODES)[number];

export interface Issue {
  readonly code: IssueCode;
  /** JSON pointer (RFC 6901) to the field. */
  readonly path: string;
  /** A sentence that names the entity and the limit; never a secret's value. */
  readonly message: string;
  /** A `warning` does not prevent publication. */
  readonly severity: "error" | "warning";
  /** Position in the text, 1-based. */
  readonly line?: number;
  readonly column?: number;
  /** Number of issues represented by this one; default 1. */
  readonly count?: number;
}
