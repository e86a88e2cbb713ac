"""How searches were used: counted over the recorded retrievals, in bounded memory; it never writes."""
