const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the quota of the disk is used up",
  EROFS: "the disk is read-only",
  EACCES: "the file or its directory may not be written",
  EPERM: "the file or its directory may not be written",
  ELOOP: "it is a link",
  EISDIR: "it is a directory",
  ENXIO: "it is not a regular file",
  ENOTDIR: "its directory is a file",
  EEXIST: "its directory is a file",
  EMFILE: "too many files are open",
  ENFILE: "too many files are open",
  EFBIG: "the file may not get larger",
};

/** Why a log file cannot be written; an error made from such a sentence keeps it. */
export function problemSentence(path: string, error: unknown): string {
  const { message } = error as Error;
  return message.startsWith("The log file") ? message : `The log file ${path} cannot be written: ${reasonOf(error)}`;
}

/** The system error in words, to complete a sentence. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined ? message : (REASONS[code] ?? code);
}
