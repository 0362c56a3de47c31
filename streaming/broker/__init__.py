"""What runs beside a broker: it reads log dirs, keeps what changed in a journal, and answers a job."""
