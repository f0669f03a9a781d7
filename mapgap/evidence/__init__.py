"""What is known and how well: ledger, certificates, contradictions, worst cases."""
