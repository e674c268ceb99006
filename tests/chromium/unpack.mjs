// Unpack the archives named on the command line into TMPDIR, by the loader of the package that brings them.
import { inflate } from "@sparticuz/chromium";

for (const archive of process.argv.slice(2)) await inflate(archive);
