//! Empty: this package only names where the SQLite sources come from.
