"""What a hostile input may cost: CPU and memory grow linearly with its bytes, within a bound that is said."""
